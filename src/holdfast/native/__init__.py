"""C sources of small programs; `holdfast.adapters.native` compiles them on this machine."""
