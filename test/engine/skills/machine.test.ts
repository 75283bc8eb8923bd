/** What the Python of a machine can import, in the layouts of macOS and Windows; nothing is claimed where that cannot be told. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { thisMachine } from '../../../src/engine/skills/machine.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('the Python of a machine', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());
  const at = (path: string): string => join(folder.path, path);

  function program(path: string): void {
    folder.add({ [path]: '' });
    chmodSync(at(path), 0o755);
  }
  function link(path: string, to: string): void {
    mkdirSync(dirname(at(path)), { recursive: true });
    symlinkSync(at(to), at(path));
  }
  const on = (platform: NodeJS.Platform, path: string, env: Record<string, string> = {}) =>
    thisMachine({ PATH: at(path), HOME: at('home'), ...env }, platform).python();

  it('is that of Homebrew, whose packages lie behind a link', () => {
    const version = 'opt/homebrew/Cellar/python@3.12/3.12.4/Frameworks/Python.framework/Versions/3.12';
    program(`${version}/bin/python3.12`);
    folder.add({
      [`${version}/lib/python3.12/os.py`]: '',
      'opt/homebrew/lib/python3.12/site-packages/requests/__init__.py': '',
      'opt/homebrew/lib/python3.12/site-packages/requests-2.32.3.dist-info/METADATA': '',
    });
    link(`${version}/lib/python3.12/site-packages`, 'opt/homebrew/lib/python3.12/site-packages');
    link('opt/homebrew/bin/python3', `${version}/bin/python3.12`);
    const python = on('darwin', 'opt/homebrew/bin');
    assert.deepEqual(
      [python?.hasModule('requests'), python?.hasPackage('Requests'), python?.hasModule('numpy')],
      [true, true, false],
    );
  });

  it('is that of python.org with what the person has installed for themselves', () => {
    const version = 'Library/Frameworks/Python.framework/Versions/3.11';
    program(`${version}/bin/python3.11`);
    folder.add({
      [`${version}/lib/python3.11/os.py`]: '',
      'home/Library/Python/3.11/lib/python/site-packages/yaml/__init__.py': '',
      'home/Library/Python/3.12/lib/python/site-packages/numpy/__init__.py': '',
    });
    link('usr/local/bin/python3', `${version}/bin/python3.11`);
    const python = on('darwin', 'usr/local/bin');
    assert.deepEqual([python?.hasModule('yaml'), python?.hasModule('numpy')], [true, false]);
  });

  it('is not told where a program only stands for it', () => {
    program('usr/bin/python3');
    assert.equal(on('darwin', 'usr/bin'), undefined, "the system's own, which starts another");
    program('AppData/Local/Microsoft/WindowsApps/python.exe');
    assert.equal(on('win32', 'AppData/Local/Microsoft/WindowsApps', { APPDATA: at('roaming') }), undefined);
    assert.equal(on('win32', 'nowhere'), undefined);
  });

  const python312 = { 'Python312/Lib/os.py': '', 'Python312/python3.dll': '', 'Python312/python312.dll': '' };
  const roaming = { 'roaming/Python/Python312/site-packages/yaml/__init__.py': '' };

  it('is that of an installation on Windows, with the folder of the person', () => {
    program('Python312/python.exe');
    folder.add({ ...python312, ...roaming, 'Python312/Lib/site-packages/requests/__init__.py': '' });
    const python = on('win32', 'Python312', { APPDATA: at('roaming') });
    assert.deepEqual(
      [python?.hasModule('requests'), python?.hasModule('yaml'), python?.hasModule('numpy')],
      [true, true, false],
    );
    assert.equal(on('win32', 'Python312'), undefined, 'where the person installs is not known');
  });

  it('is that of a virtual environment on Windows, alone or with the others', () => {
    program('venv/Scripts/python.exe');
    folder.add({ ...python312, ...roaming, 'venv/Lib/site-packages/flask/__init__.py': '' });
    for (const [shared, hasOthers] of [
      ['false', false],
      ['true', true],
    ] as const) {
      const settings = `home = ${at('Python312')}\r\ninclude-system-site-packages = ${shared}\r\n`;
      folder.add({ 'venv/pyvenv.cfg': settings });
      const python = on('win32', 'venv/Scripts', { APPDATA: at('roaming') });
      assert.deepEqual([python?.hasModule('flask'), python?.hasModule('yaml')], [true, hasOthers]);
    }
  });
});
