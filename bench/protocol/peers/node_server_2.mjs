// The tool on the TypeScript SDK 2.x.

import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { call, description, inputShape, name, outputShape } from './the_tool.mjs';

serveStdio(() => {
  const server = new McpServer({ name: 'node-server-2', version: '1.0.0' }, { capabilities: { tools: {} } });
  const schemas = { inputSchema: z.strictObject(inputShape), outputSchema: z.object(outputShape) };
  server.registerTool(name, { description, ...schemas }, call);
  return server;
});
