// The tool that every Node peer serves: one step's output against its rules, and its arguments as zod types.

import { readFileSync } from 'node:fs';
import { z } from 'zod';

const task = JSON.parse(readFileSync(new URL('./task.json', import.meta.url), 'utf8'));
const rules = new Map();
for (const [guide, steps] of Object.entries(task.rules)) {
  for (const [step, ofStep] of Object.entries(steps)) {
    const compiled = ofStep.map((rule) => [new RegExp(rule.pattern, rule.flags), rule.message]);
    rules.set(`${guide}/${step}`, compiled);
  }
}

const id = (description) => z.string().regex(/^[a-z0-9-]+$/).min(3).max(64).describe(description);

export const name = task.tool.name;
export const description = task.tool.description;
export const inputShape = {
  workflowId: id('The workflow ID'),
  stepId: id('The step ID to validate'),
  output: z.string().min(1).describe('The step output to validate'),
  context: z.record(z.string(), z.any()).optional().describe("Optional execution context that the rules' conditions see"),
};
export const outputShape = {
  valid: z.boolean(),
  issues: z.array(z.string()).optional(),
  suggestions: z.array(z.string()).optional(),
};

export function call({ workflowId, stepId, output }) {
  const issues = rules
    .get(`${workflowId}/${stepId}`)
    .filter(([pattern]) => !pattern.test(output))
    .map(([, message]) => message);
  const suggestions = issues.map(() => 'add what is missing and validate again');
  const result = { valid: issues.length === 0, issues, suggestions };
  return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: result };
}
