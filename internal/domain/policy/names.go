package policy

// ApprovalProjection is the name of the documents of approvals.
const ApprovalProjection = "approvals"

// AnswerEvents are the events after which an approval may have its final answer.
var AnswerEvents = []string{"approval.decided", "approval.expired"}
