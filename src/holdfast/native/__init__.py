"""C sources of small programs; `holdfast.adapters.compiled` compiles them on this machine."""
