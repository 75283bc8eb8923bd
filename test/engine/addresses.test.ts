import assert from 'node:assert/strict';
import { addressKind, hostKind, parseWebAddress } from '../../src/engine/addresses.ts';

describe('addressKind', () => {
  const kinds: Record<string, readonly string[]> = {
    public: [
      '8.8.8.8',
      '93.184.216.34',
      '172.32.0.1',
      '2606:2800:220:1::1',
      '::ffff:8.8.8.8',
      '64:ff9b::808:808',
    ],
    loopback: ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1', '64:ff9b::7f00:1'],
    private: [
      '10.0.0.1',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      '100.64.0.1',
      '198.18.0.1',
      'fc00::1',
    ],
    'link-local': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', '::ffff:169.254.1.1'],
    metadata: ['169.254.169.254', '169.254.170.2', '100.100.100.200', 'fd00:ec2::254', '::ffff:a9fe:a9fe'],
    reserved: [
      ...['0.0.0.0', '0.1.2.3', '::', '224.0.0.1', '255.255.255.255', 'ff02::1', '2002:7f00:1::', '2001::1'],
      ...['2001:db8::1', '::127.0.0.1', '64:ff9b:1::7f00:1', '192.0.2.1', '100::1', '5f00::1', 'no address'],
    ],
  };
  for (const [kind, addresses] of Object.entries(kinds))
    it(`knows what is ${kind}`, () => {
      for (const address of addresses) assert.equal(addressKind(address), kind, address);
    });
});

describe('hostKind', () => {
  const ofUrl = (url: string): string => hostKind(new URL(url).hostname);

  it('sees through every spelling of a literal address', () => {
    for (const host of [
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '127.1',
      '①②⑦.⓪.⓪.①',
      '127。0。0。1',
      '127.0.0.1.',
    ])
      assert.equal(ofUrl(`http://${host}:8080/`), 'loopback', host);
    assert.equal(ofUrl('http:\\\\127.0.0.1:1/'), 'loopback');
    assert.equal(ofUrl('http://[::ffff:127.0.0.1]/'), 'loopback');
    assert.equal(ofUrl('http://0xa9fea9fe/'), 'metadata');
    assert.equal(ofUrl('http://0/'), 'reserved');
  });

  it('knows names of this machine, of its network and of metadata services', () => {
    assert.equal(ofUrl('http://LOCALHOST./'), 'loopback');
    assert.equal(ofUrl('http://app.localhost/'), 'loopback');
    assert.equal(ofUrl('http://router.lan/'), 'private');
    for (const host of ['x.localdomain', 'kubernetes.default.svc', 'x.private', 'nas.fritz.box'])
      assert.equal(ofUrl(`http://${host}/`), 'private', host);
    for (const host of ['localhost.localdomain', 'ip6-localhost'])
      assert.equal(ofUrl(`http://${host}/`), 'loopback', host);
    assert.equal(ofUrl('http://instance-data.ec2.internal/'), 'metadata');
    assert.equal(ofUrl('http://nas/'), 'private');
    assert.equal(ofUrl('http://metadata.google.internal/'), 'metadata');
    assert.equal(ofUrl('http://example.com/'), 'public');
    assert.equal(ofUrl('http://localhost.example.com/'), 'public');
  });
});

describe('parseWebAddress', () => {
  it('gives the normal form without fragment', () => {
    const parsed = parseWebAddress('HTTP://Example.COM:80/a/../b?c#d');
    assert.equal('url' in parsed && parsed.url.href, 'http://example.com/b?c');
  });

  it('refuses other schemes, credentials and what is no address', () => {
    for (const [url, expected] of [
      ['file:///etc/passwd', /not file/],
      ['gopher://127.0.0.1:6379/_FLUSHALL', /not gopher/],
      ['data:text/html,x', /not data/],
      ['http://public.test@127.0.0.1/', /user name or password/],
      ['notaurl', /not a web address/],
      ['http://exa mple.test/', /not a web address/],
    ] as const) {
      const parsed = parseWebAddress(url);
      assert.match('problem' in parsed ? parsed.problem : '', expected, url);
    }
  });
});
