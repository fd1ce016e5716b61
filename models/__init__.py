"""Access to models: gateway, direct client, LiteLLM, embedded server, budget and session."""
