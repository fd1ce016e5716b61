"""The agents as DSPy signatures over our gateway, and a note-taker compiled with them."""
