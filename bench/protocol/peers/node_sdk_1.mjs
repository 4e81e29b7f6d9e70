// The tool on the TypeScript SDK 1.x, over stdio, or with the argument `http` over HTTP.

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { call, description, inputShape, name, outputShape } from './the_tool.mjs';

function newServer() {
  const server = new McpServer({ name: 'node-sdk-1', version: '1.0.0' });
  server.registerTool(name, { description, inputSchema: inputShape, outputSchema: outputShape }, call);
  return server;
}

// Node's own HTTP server, without a web framework: the least that the transport can be put on.
async function serveHttp() {
  const { createServer } = await import('node:http');
  const { randomUUID } = await import('node:crypto');
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
  const sessions = new Map();

  async function transportFor(request) {
    const known = sessions.get(request.headers['mcp-session-id']);
    if (known) return known;
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await newServer().connect(transport);
    return transport;
  }

  const listener = createServer(async (request, response) => {
    await (await transportFor(request)).handleRequest(request, response);
  });
  listener.listen(0, '127.0.0.1', () => console.error(`serving http://127.0.0.1:${listener.address().port}/mcp`));
}

if (process.argv[2] === 'http') await serveHttp();
else await newServer().connect(new StdioServerTransport());
