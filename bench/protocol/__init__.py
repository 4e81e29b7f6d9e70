"""What one stdio server costs: Handrail beside the SDKs, each serving one equal tool, measured side by side."""
