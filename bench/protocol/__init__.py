"""What one MCP server costs, over stdio and over HTTP: Handrail beside the SDKs, each serving one equal tool, measured
side by side."""
