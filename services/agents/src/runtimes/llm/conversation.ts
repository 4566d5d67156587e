import type { ModelMessage } from 'ai';
import { AgentFault } from '../network/network-run.ts';
import type { RunTools } from '../../tools/run-tools.ts';
import type { ModelToolCall } from './completion.ts';
import type { ModelAnswer, ModelTool } from './model.ts';

const PREFIX = 'memory_';
/** Of one answer of a tool: a longer one would fill what a model can read. */
const MAX_ANSWER_CHARACTERS = 65_536;
/** Of all that a model is told in one run. */
const MAX_CHARACTERS = 2_097_152;

/** What a model is told of the tools of its run. */
export const modelToolsOf = (tools: RunTools | undefined): ModelTool[] =>
  tools?.operations.map(({ name, description, schema }) => ({
    name: PREFIX + name,
    description: `${description} Memory types: ${tools.memoryTypes.join(', ')}.`,
    schema,
  })) ?? [];

interface Asking {
  tools: RunTools | undefined;
  maxTurns: number;
  signal: AbortSignal;
  /** Asks the model once. */
  ask(messages: ModelMessage[]): Promise<ModelAnswer>;
  /** For the trace. */
  note(text: string): void;
}

/**
 * A conversation with a model: it may call tools, and goes on with their answers, until it answers with a text. What a
 * tool answers is data for the model; what a tool may touch is decided by RunTools, whatever the model says.
 */
export function openConversation({ tools, maxTurns, signal, ask, note }: Asking) {
  const messages: ModelMessage[] = [];
  let turns = 0;
  let characters = 0;

  function add(message: ModelMessage, length: number): void {
    characters += length;
    if (characters > MAX_CHARACTERS)
      throw new AgentFault(`The conversation with the model has more than ${MAX_CHARACTERS} characters`);
    messages.push(message);
  }

  async function answerTo({ id, name, input }: ModelToolCall): Promise<void> {
    note(`${name} ${input}`);
    const answer = await tools!.call(name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name, input, signal);
    note(answer);
    const isShort = answer.length <= MAX_ANSWER_CHARACTERS;
    const value = isShort ? answer : '{"error":{"message":"The answer is too long; ask for fewer objects."}}';
    const result = { type: 'tool-result', toolCallId: id, toolName: name, output: { type: 'text', value } } as const;
    add({ role: 'tool', content: [result] }, value.length);
  }

  return {
    /** Says this to the model, and gives the text with which it answers in the end. @throws AgentFault, ToolFault */
    async say(text: string): Promise<string> {
      add({ role: 'user', content: text }, text.length);
      for (;;) {
        turns += 1;
        if (turns > maxTurns) throw new AgentFault(`The model took more than ${maxTurns} turns`);
        const answer = await ask(messages);
        if (answer.text !== '' || answer.toolCalls.length === 0) note(answer.text);
        if (answer.fault !== undefined) throw new AgentFault(answer.fault);
        if (answer.toolCalls.length > 0 && !tools)
          throw new AgentFault('The model called a tool, which its agent does not have');
        const parts = [{ type: 'text', text: answer.text } as const, ...answer.toolCalls.map(callPart)];
        const length = answer.toolCalls.reduce((sum, { input }) => sum + input.length, answer.text.length);
        add({ role: 'assistant', content: parts.slice(answer.text === '' ? 1 : 0) }, length);
        if (answer.toolCalls.length === 0) return answer.text;
        for (const call of answer.toolCalls) await answerTo(call);
      }
    },
  };
}

/**
 * The input stays a text: its value would take many times the memory, and a deep one could not be written. The library
 * writes JSON as it is, and what is no JSON as a JSON string; the answer of the tool says that it is none.
 */
const callPart = ({ id, name, input }: ModelToolCall) =>
  ({ type: 'tool-call', toolCallId: id, toolName: name, input }) as const;
