"""The gate: who is behind what, policies, approvals."""
