from telos_agent import TelosOrchestrator

orchestrator = TelosOrchestrator(project_dir="./myproject")
runner = orchestrator.interview()

# Round 1: Ali sends initial interview data as plain text
result = runner.process_round(
    transcript="""North Star: Build a bakery website

Summary: User wants a 3-page website for their bakery.

Q: What pages do you need?
A: Home, menu, and contact page

Q: Do you have a domain?
A: Yes, mybakery.com
""",
)
# result.questions = ["What tech stack...", "Do you need online ordering?"]
# result.ready = False

# Round 2: Ali appends new Q&A to transcript, sends again
result = runner.process_round(
    transcript="""North Star: Build a bakery website

Summary: User wants a 3-page website for their bakery.

Q: What pages do you need?
A: Home, menu, and contact page

Q: Do you have a domain?
A: Yes, mybakery.com

Q: What tech stack do you prefer?
A: Whatever you recommend

Q: Do you need online ordering?
A: Yes, simple menu ordering
""",
)
# result.questions = []
# result.ready = True

# Phase 3: Plan and split into PRDs
orchestrator.generate_plan(runner.get_context())
orchestrator.generate_prds()

# Phase 4: Execute all PRDs
ralph_result = orchestrator.execute()
# ralph_result.success = True
# ralph_result.iterations = 7

# Or do it all in one call after interview is ready:
# ralph_result = orchestrator.plan_and_execute(runner.get_context())
