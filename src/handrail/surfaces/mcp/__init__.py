"""The MCP surface: operations as tools, refusals as errors."""
