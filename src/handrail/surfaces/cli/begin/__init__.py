"""Commands under the heading Begin: setting up, looking whether it works, trusting."""
