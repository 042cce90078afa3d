"""C sources of the two small programs; `holdfast.adapters.native` compiles them on this machine."""
