"""Reading command lines with tree-sitter and its grammar of bash."""
