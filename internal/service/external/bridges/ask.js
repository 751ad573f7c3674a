// What all of these share: asks the daemon whether the program may use a tool. A person may take days, so a request has no time-out.
// Every failure is a refusal.
const http = require("http");
const post = (body) =>
  new Promise((done, fail) => {
    const request = http.request(process.env.AGENTBOX_PERMISSIONS_URL, { method: "POST", agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (d) => (text += d)).on("end", () => done([answer.statusCode, text])).on("error", fail);
    });
    request.on("error", fail).end(body);
  });
const ask = async (id, tool, input) => {
  for (;;) {
    try {
      const [status, text] = await post(JSON.stringify({ id, tool, input }));
      if (status === 429) {
        await new Promise((done) => setTimeout(done, 1000));
        continue;
      }
      const v = JSON.parse(text);
      return status === 200 && v.allow === true ? { allow: true } : { reason: v.reason || v.error.message };
    } catch (e) {
      return { reason: "the daemon did not answer: " + e };
    }
  }
};
