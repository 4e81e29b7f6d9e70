"""What one durable write costs: Handrail's store beside the bare drivers and two peers, on the same disk and server."""
