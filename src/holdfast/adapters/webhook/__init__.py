"""A policy that a service decides, asked by HTTP."""
