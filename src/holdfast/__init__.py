"""holdfast: the live execution as an object that nobody owns."""

__version__ = "0.1.0"
