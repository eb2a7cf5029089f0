"""The LLM SDKs: what they read their base URL from, and real ones that read recorded responses."""
