"""The LLM SDKs: the variables they read their base URL from, and real ones that read responses."""
