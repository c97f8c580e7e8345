"""HTTP/2 with prior knowledge and gRPC on top of it: the server side, small enough to sit on the request path."""
