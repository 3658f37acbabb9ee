"""The one place that opens DuckDB: loads `sql/`, builds the marts, sandboxes user SQL."""
