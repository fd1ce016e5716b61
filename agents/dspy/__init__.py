"""The agents as DSPy signatures, and a DSPy language model over our gateway."""
