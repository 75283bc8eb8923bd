import assert from 'node:assert/strict';
import { webviewPage } from '../../../src/extension/base/webviewPage.ts';

const parts = {
  cspSource: 'https://view.example',
  scriptUri: 'https://view.example/main.js',
  styleUri: 'https://view.example/main.css',
};

describe('webviewPage', () => {
  it('lets exactly its own script run, and nothing be loaded from the network', () => {
    const page = webviewPage(parts);
    const policy = /content="(default-src[^"]*)"/.exec(page)?.[1] ?? '';
    const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? 'none';
    assert.equal(
      policy,
      `default-src 'none'; script-src 'nonce-${nonce}'; style-src https://view.example; img-src https://view.example data:; font-src https://view.example; form-action 'none'; base-uri 'none'`,
    );
    assert.deepEqual(page.match(/<script[^>]*>/g), [
      `<script type="module" nonce="${nonce}" src="https://view.example/main.js">`,
    ]);
  });

  it('uses a nonce once', () => {
    assert.notEqual(webviewPage(parts), webviewPage(parts));
  });
});
