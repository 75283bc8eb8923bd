/**
 * Says which test of a real VS Code passed only at its second try: VS Code sometimes draws a row anew under the pointer. One that is
 * named here again and again has a defect.
 */
export const mochaHooks = {
  afterEach(this: Mocha.Context): void {
    const { currentTest: test } = this;
    if (test?.state === 'passed' && test['_currentRetry'] > 0)
      console.log(`    (at its second try: ${test.fullTitle()})`);
  },
};
