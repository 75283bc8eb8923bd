/** What is known for a secret by its name alone: by the one list for the policy, and by the other for programs that search. */
import assert from 'node:assert/strict';
import { globMatcher } from '../../../src/engine/tools/globPattern.ts';
import { isSensitive, secretFileGlobs, secretFolderNames } from '../../../src/engine/tools/secretNames.ts';

describe('names of secrets', () => {
  const secret = [
    ...['.env', '.env.local', 'prod.env', '.ENV', '.e\u200bnv', '.env.', '.npmrc', '.netrc', '_netrc'],
    ...['id_rsa', 'id_rsa.bak', 'id_ed25519-work', 'server.pem', 'tls.KEY', 'x.kdbx', 'home.ovpn'],
    ...[
      '.git-credentials',
      'credentials',
      '.credentials.json',
      'aws_credentials.csv',
      'credentials.tfrc.json',
    ],
    ...['secrets.yaml', '.secrets', 'app-secrets.json', 'service-account-prod.json', 'terraform.tfstate'],
    ...['.bash_history', 'wallet.dat', 'kubeconfig', '.dockercfg', '.authinfo.gpg'],
  ];
  const folders = [
    ...['.ssh/config', '.aws/config', '.kube/config', '.gnupg/x', '.mozilla/firefox/logins.json'],
    ...['.config/gh/hosts.yml', '.config/gcloud/x.db', '.docker/config.json', '.codex/auth.json'],
    ...['.config/op/config', '.config/hub', '.config/stripe/config.toml', '.config/rclone/rclone.conf'],
    ...['.config/google-chrome/Default/Login Data', '.m2/settings.xml', 'Library/Keychains/login.db'],
  ];
  const ordinary = [
    ...[
      'environment.md',
      'env.ts',
      'notes.md',
      'id_rsa.pub',
      'keyboard.ts',
      'keys.md',
      'monkey',
      'secret-garden.md',
    ],
    ...['secretary.txt', 'history.md', 'config.json', 'settings.json', 'docker/config.json', 'cookies.md'],
    ...['credentials.md', 'service.json', 'aws/readme.md', 'wallet.ts', 'chromium/readme.md'],
  ];

  it('are told in a time that grows with the length of the name alone', () => {
    assert.equal(isSensitive(`${'. '.repeat(200_000)}x`), false);
    assert.equal(isSensitive(`.env${'. '.repeat(200_000)}`), true);
  });

  for (const path of [...secret, ...folders])
    it(`holds ${JSON.stringify(path)} for one`, () => assert.ok(isSensitive(`/home/me/${path}`)));
  for (const path of ordinary)
    it(`holds ${JSON.stringify(path)} for none`, () => assert.ok(!isSensitive(`/home/me/${path}`)));

  it('has the same for programs that search, which fold no case and no characters', () => {
    const globs = secretFileGlobs.map(glob => globMatcher(glob));
    for (const path of [...secret, ...folders].filter(each => !/[\u200b]|\.$/.test(each))) {
      const parts = path.split('/');
      const file = (parts.at(-1) ?? '').toLowerCase();
      const isLeftOut =
        globs.some(matches => matches(file)) || parts.some(part => secretFolderNames.includes(part));
      assert.ok(isLeftOut, path);
    }
  });
});
