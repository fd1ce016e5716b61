"""Between a request and an endpoint: fields that it refuses, limits that it keeps, proxies and certificates."""
