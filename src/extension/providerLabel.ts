/** How providers are called where people read their names. */

const labels: Readonly<Record<string, string>> = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  gemini: 'Gemini',
  openrouter: 'OpenRouter',
  ollama: 'Ollama',
  vscode: 'VS Code',
  replay: 'Recording',
};

export function providerLabel(name: string): string {
  return labels[name] ?? name;
}
