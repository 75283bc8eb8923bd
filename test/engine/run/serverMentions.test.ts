/** What the words of a request name of MCP servers, and which skill runs with it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import {
  aimedAtServer,
  namesOffers,
  offersNamed,
  promptCalled,
  resourcesMentioned,
} from '../../../src/engine/run/serverMentions.ts';
import type { FileAgent } from '../../../src/engine/skills/discover.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('what a request names of MCP servers', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'mcp.json': JSON.stringify({ mcpServers: { beds: { command: 'beds' } } }) });
  });
  afterEach(() => folder.remove());
  const skill = (id: string, isDisabled = false) => ({ id, name: id, names: [id], isDisabled });
  const agent = (name: string, ...skills: ReturnType<typeof skill>[]): FileAgent =>
    ({ name, skills, mcpConfig: join(folder.path, 'mcp.json') }) as unknown as FileAgent;
  const serverless = (name: string): FileAgent =>
    ({ ...agent(name, skill('sow')), mcpConfig: undefined }) as unknown as FileAgent;

  it('is a prompt behind a slash at its beginning', () => {
    const rows = [
      ['/beds:plan', { word: '/beds:plan', server: 'beds', prompt: 'plan', words: '' }],
      [
        '  /beds:plan  the \n day ',
        { word: '/beds:plan', server: 'beds', prompt: 'plan', words: 'the \n day' },
      ],
      ['/beds:plan:more x', { word: '/beds:plan:more', server: 'beds', prompt: 'plan:more', words: 'x' }],
      ...['/beds', '/beds:', '/:plan', 'do /beds:plan', '/a/beds:plan', 'beds:plan', ''].map(
        text => [text] as const,
      ),
    ] as const;
    for (const [text, called] of rows) {
      assert.deepEqual(promptCalled(text), called, text);
      assert.equal(namesOffers(text), called !== undefined, text);
    }
  });

  it('is each resource behind an @, without the marks of the sentence', () => {
    const uris = (text: string): string[] =>
      resourcesMentioned(text).map(({ server, uri }) => `${server} ${uri}`);
    assert.deepEqual(uris('see @beds:file:///a.md, and (@beds:b).'), ['beds file:///a.md', 'beds b']);
    assert.deepEqual(uris('mail me@beds:x or a/@beds:x or -@beds:x or @beds: x'), []);
    assert.deepEqual(uris('@beds:..'), ['beds ']);
    assert.equal(namesOffers('see @beds:a'), true);
    assert.equal(namesOffers('see beds:a'), false);
  });

  it('counts for an agent that has the server, once, and not before a skill of that name', () => {
    const garden = agent('garden', skill('sow'));
    const { prompt, resources } = offersNamed('/beds:plan @beds:a @beds:a @beds:b @other:c @beds:.', garden);
    assert.equal(prompt?.prompt, 'plan');
    assert.deepEqual(resources, [
      { server: 'beds', uri: 'a' },
      { server: 'beds', uri: 'b' },
    ]);
    assert.equal(offersNamed('/other:plan', garden).prompt, undefined);
    assert.equal(offersNamed('/beds:sow', agent('beds', skill('sow'))).prompt, undefined);
    assert.deepEqual(offersNamed('/beds:plan @beds:a', serverless('garden')), {
      prompt: undefined,
      resources: [],
    });
  });

  it('has the only skill of its agent run, that of the conversation, or one that its words choose', () => {
    const garden = agent('garden', skill('sow'), skill('old', true));
    const call = { text: '/beds:day-plan' };
    const aimed = aimedAtServer(call, [serverless('a'), garden]);
    assert.ok('reason' in aimed);
    assert.deepEqual(
      [aimed.skill.id, aimed.reason],
      ['sow', { rule: 'explicit', matched: '/beds:day-plan' }],
    );
    const two = agent('garden', skill('sow'), skill('hoe'));
    assert.deepEqual(aimedAtServer(call, [two]), { text: 'day plan', agent: 'garden' });
    assert.deepEqual(aimedAtServer({ text: '/beds:day the beds' }, [two]), {
      text: 'the beds',
      agent: 'garden',
    });
    const conversation = { skill: { agent: 'garden', skill: 'hoe' } };
    const goesOn = aimedAtServer({ ...call, conversation } as never, [two]);
    assert.ok('reason' in goesOn);
    assert.deepEqual([goesOn.skill.id, goesOn.reason.rule], ['hoe', 'continued']);
  });

  it('leaves a request as it is that calls none, names its skill, or whose server nobody has', () => {
    const garden = agent('garden', skill('sow'));
    const rows = [
      [{ text: 'plan' }, [garden]],
      [{ text: '/beds:plan', skill: { agent: 'garden', skill: 'sow' } }, [garden]],
      [{ text: '/other:plan' }, [garden]],
      [{ text: '/beds:plan' }, [serverless('garden')]],
      [{ text: '/beds:plan', agent: 'orchard' }, [garden]],
      [{ text: '/beds:sow' }, [agent('beds', skill('sow'))]],
    ] as const;
    for (const [request, agents] of rows) assert.equal(aimedAtServer(request, agents), request, request.text);
    const both = [garden, agent('orchard', skill('sow'))];
    assert.throws(
      () => aimedAtServer({ text: '/beds:plan' }, both),
      /'beds': garden, orchard\. Choose the skill/,
    );
    const chosen = aimedAtServer({ text: '/beds:plan', agent: 'orchard' }, both);
    assert.ok('reason' in chosen);
    assert.equal(chosen.agent.name, 'orchard');
  });
});
