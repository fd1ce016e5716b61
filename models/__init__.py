"""How a model is reached: gateway, direct client, LiteLLM, embedded server, budget and session."""
