"""Shell integration: what is given to bash, zsh and fish, and what they report."""
