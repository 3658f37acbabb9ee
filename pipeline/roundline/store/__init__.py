"""The Parquet store of one capture: schemas, atomic writer, manifest."""
