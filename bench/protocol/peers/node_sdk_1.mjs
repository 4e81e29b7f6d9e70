// The tool on the TypeScript SDK 1.x.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { call, description, inputShape, name, outputShape } from './the_tool.mjs';

const server = new McpServer({ name: 'node-sdk-1', version: '1.0.0' });
server.registerTool(name, { description, inputSchema: inputShape, outputSchema: outputShape }, call);
await server.connect(new StdioServerTransport());
