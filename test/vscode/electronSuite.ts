/** `npm run test:electron`: the suite of `suite/` in a desktop VS Code, where one can be downloaded or is named in `TELOS_CODE`. */
import { runTests } from '@vscode/test-electron';
import { buildSuite } from './suiteBuild.ts';
import { freshWorld, worldVariables } from './world.ts';

const world = await freshWorld();
const executable = process.env['TELOS_CODE'];
try {
  process.exitCode = await runTests({
    extensionDevelopmentPath: world.extension,
    extensionTestsPath: await buildSuite(world.extension),
    extensionTestsEnv: worldVariables(world),
    launchArgs: [world.workspace, '--disable-workspace-trust', `--user-data-dir=${world.profile}`],
    ...(executable ? { vscodeExecutablePath: executable } : {}),
  });
} catch (error) {
  console.error(
    `The suite did not pass in a desktop VS Code: ${error instanceof Error ? error.message : String(error)}`,
  );
  console.error(
    'If VS Code cannot be downloaded here, name an installed one in TELOS_CODE, or run "npm run test:host".',
  );
  process.exitCode = 1;
} finally {
  await world.remove();
}
