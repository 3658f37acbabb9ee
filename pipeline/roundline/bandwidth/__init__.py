"""What a decode round must read, and what that must cost: arithmetic that knows no traces."""
