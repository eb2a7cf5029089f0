"""The same recorder inside mitmproxy, for applications that cannot be pointed anywhere."""
