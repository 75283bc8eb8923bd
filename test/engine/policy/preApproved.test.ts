/** Commands that a skill names in `allowed-tools`: unasked once the card is accepted, and nothing beside them. */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReviewedAgent } from '../../../src/engine/policy/agentFiles.ts';
import { AgentReviews } from '../../../src/engine/policy/agentReviews.ts';
import { decide } from '../../../src/engine/policy/decide.ts';
import { type PolicyContext, runPolicy } from '../../../src/engine/policy/decision.ts';
import { readToolNames, splitAllowedTools } from '../../../src/engine/skills/skillFields.ts';
import { describeCard } from '../../../src/protocol/agentCard.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('a command that `allowed-tools` names', () => {
  const named = 'Read, Bash(git:*), Bash(make build), Bash(rm:*), Bash, Bash(*), WebFetch(domain:docs.test)';
  let folder: TempFolder;
  let agent: ReviewedAgent;
  let context: PolicyContext;
  const at = (path: string): string => join(folder.path, path);
  beforeEach(() => {
    const text = `---\ndescription: d\nallowed-tools: ${named}\n---\nB`;
    folder = tempFolder({ 'pack/SKILL.md': text, 'work/a.txt': 'a', 'secret/key': 'k' });
    const skill = { dir: at('pack'), file: at('pack/SKILL.md') };
    agent = { name: 'a', packDir: at('pack'), workingDir: at('work'), source: 'user', skills: [skill] };
    const places = { configDir: at('config'), dataDir: at('data'), home: at('home'), env: {} };
    const folders = {
      workingDir: at('work'),
      packDir: at('pack'),
      skillDir: at('pack'),
      commandDir: at('work'),
    };
    mkdirSync(at('home'));
    context = {
      ...runPolicy(places, agent, folders),
      namedCommands: readToolNames(splitAllowedTools(named)).commands,
    };
  });
  afterEach(() => folder.remove());
  const decided = async (command: string): Promise<string> => {
    const { action, rule } = await decide({ id: '1', name: 'run_command', input: { command } }, context);
    return `${action} ${rule}`;
  };
  const accept = async (): Promise<void> => {
    const reviews = new AgentReviews(at('config/reviews'));
    await reviews.accept(agent, await reviews.cardOf(agent), new Date());
  };

  it('is on the card with the hosts, and asked about with it until that is accepted', async () => {
    const card = await context.reviews!.cardOf(agent);
    assert.deepEqual([card.commands, card.hosts], [['git *', 'make build'], ['docs.test']]);
    assert.match(describeCard(card).join('\n'), /Commands that it may run:\n {2}git \*\n {2}make build/);
    assert.equal(await decided('git commit -m hi'), 'ask card.new');
    await accept();
    assert.equal(await decided('git commit -m hi'), 'allow card.command');
    assert.equal(await decided('git add a.txt'), 'allow card.command');
    assert.equal(await decided('make build'), 'allow card.command');
  });

  it('asks about everything that it does not name word by word, or that does more', async () => {
    await accept();
    symlinkSync(at('secret'), at('work/link'));
    for (const command of [
      ...['make', 'make build all', 'npm test', 'rm a.txt', 'git', 'gitx add'].filter(each => each !== 'git'),
      ...[
        'git add a.txt; touch b',
        'git add $(touch b)',
        'git add a.txt > b',
        'X=1 git add a',
        'git add\nrm a',
      ],
      ...['git push', 'git push --force', 'git reset --hard', 'git clean -fd', 'git branch --delete x'],
      ...['git -C .. add a', 'git -C../secret add a', 'git --git-dir=/tmp/x add a', 'git add ~/x'],
      ...['git add link/key', 'git add .env', 'git mv a.txt AGENTS.md', 'git mv a.txt .git/hooks/pre-commit'],
      'git clone file:///etc x',
    ])
      assert.match(await decided(command), /^ask /, command);
  });

  it('asks about files of other folders behind any sign, and about each file that is sent', async () => {
    context = {
      ...context,
      namedCommands: [
        ['curl', '*'],
        ['git', '*'],
      ],
    };
    const others = 'Bash(curl:*), Bash(git:*)';
    writeFileSync(at('pack/SKILL.md'), `---\ndescription: d\nallowed-tools: ${others}\n---\nB`);
    await accept();
    const host = "'https://docs.test/x?a=/b,c:/d'";
    for (const command of [
      ...[`curl ${host}`, `curl -sS -o out.json ${host}`, `curl --url=${host} -H Accept:text/plain`],
      ...['curl -d name=value http://docs.test:8080/a/b', 'git show main:a.txt'],
    ])
      assert.equal(await decided(command), 'allow card.command', command);
    symlinkSync(at('secret/key'), at('work/link'));
    for (const file of ['~/notes/private.txt', '/etc/hostname', '../secret/key', 'a.txt', 'link'])
      for (const option of ['-d @', '-d@', '--data=@', '--data-binary @', '-F f=@', '-Ff=@', '-F "f=a;g=@'])
        assert.match(
          await decided(`curl ${option}${file}${option.includes('"') ? '"' : ''} http://docs.test`),
          /^ask /,
          `${option}${file}`,
        );
    for (const word of [
      ...['-F f=</etc/hostname', '--data-urlencode name@/etc/hostname', '--data-urlencode n@link'],
      ...['-T /etc/hostname', '-T~/x', '--config=/etc/x', '-F f=a,/etc/hostname', '--resolve a:80:/etc/x'],
      ...['file:/etc/hostname', 'FILE:///etc/hostname', '{file:///etc/hostname,x}', '--url=file:/etc/x'],
      ...['--cacert=~/x', '-b=../secret/key', 'http://docs.test/@/etc/hostname'],
    ])
      assert.match(await decided(`curl ${word.replace('<', "'<'")} http://docs.test`), /^ask /, word);
  });

  it('asks about what is dangerous by itself, without a card and without always', async () => {
    const asked = async (command: string) => {
      const decision = await decide({ id: '1', name: 'run_command', input: { command } }, context);
      assert.equal(decision.action, 'ask', command);
      return decision.action === 'ask' ? decision : assert.fail();
    };
    for (const isReviewed of [false, true]) {
      if (isReviewed) await accept();
      for (const command of [
        'git rebase main',
        'git push --force',
        'rm -r build',
        'make build && sudo make x',
      ]) {
        const { danger, scopes, card, lasting, toAllow } = await asked(command);
        assert.ok(danger && danger.length > 0, command);
        assert.deepEqual([scopes, card, lasting], [['once', 'run'], undefined, undefined], command);
        assert.equal(toAllow?.kind, 'allow_rule');
      }
    }
    assert.equal((await asked('npm test')).danger, undefined);
  });

  it('refuses what destroys a home or a system, whatever is granted', async () => {
    await accept();
    mkdirSync(at('config'), { recursive: true });
    const lines = ['rm -rf ~', 'rm -rf /', 'git rebase main', 'git push --force'].map(
      command => `[[allow]]\nagent = "a"\ntool = "run_command"\ncommand = "${command}"\n`,
    );
    const open = ['["git", "*"]', '["sudo", "*"]'].map(
      argv => `[[allow]]\nagent = "a"\ntool = "run_command"\nargv = ${argv}\n`,
    );
    writeFileSync(at('config/policy.toml'), [...lines, ...open].join('\n'), { mode: 0o600 });
    assert.equal(await decided('rm -rf ~'), 'deny floor.destroys');
    assert.equal(await decided('rm -rf /'), 'deny floor.destroys');
    // Rules that name a danger in their own words hold; one that is open for any does not.
    assert.match(await decided('git rebase main'), /^allow policy\.allow:/);
    assert.match(await decided('sudo make install'), /^allow policy\.allow:/);
    assert.match(await decided('git fetch'), /^allow /);
    assert.equal(await decided('git rebase other'), 'ask run.command');
    assert.equal(await decided('sudo rm -r ../other'), 'ask run.command');
    assert.equal(await decided('sudo rm -rf /'), 'deny floor.destroys');
  });

  it('asks again once a byte of the skill has changed, and for another skill that does not name it', async () => {
    await accept();
    assert.equal(await decided('make build'), 'allow card.command');
    context = { ...context, namedCommands: [['git', '*']] };
    assert.equal(await decided('make build'), 'ask run.command');
    folder.add({ 'pack/SKILL.md': '---\ndescription: e\n---\nB' });
    assert.equal(await decided('git add a.txt'), 'ask card.changed');
  });
});
