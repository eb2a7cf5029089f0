"""Object stores: S3, Google Cloud Storage, Azure, and folders that are read like them."""
