"""deltatape: a flight recorder for LLM streams.

Names are loaded when first used (PEP 562), so that importing the package costs nothing.
"""

__version__ = "0.1.0"
