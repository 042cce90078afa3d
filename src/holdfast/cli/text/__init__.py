"""What verbs print: tables, trees, receipts, sanitized bytes."""
