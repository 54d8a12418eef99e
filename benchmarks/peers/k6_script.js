// One session a virtual user; SCHEDULE=interval: setInterval, as in k6's examples; absolute: by hand, to points in time.
import exec from "k6/execution";
import { setInterval, clearInterval, setTimeout } from "k6/timers";
import { WebSocket } from "k6/experimental/websockets";

const sessions = Number(__ENV.SESSIONS), chunks = Number(__ENV.CHUNKS), interval = Number(__ENV.INTERVAL_S) * 1000;
const payload = new ArrayBuffer(Number(__ENV.BYTES));

export const options = {
  scenarios: { all: { executor: "per-vu-iterations", vus: sessions, iterations: 1, maxDuration: "10m" } },
};

export default function () {
  setTimeout(session, (Number(__ENV.STAGGER_S) * 1000 * (exec.vu.idInTest - 1)) / sessions);
}

function session() {
  const service = new WebSocket(__ENV.URL);
  service.binaryType = "arraybuffer";
  service.onmessage = (message) => String(message.data).includes("final") && service.close();
  service.onopen = () => {
    let sent = 0;
    const zero = Date.now();
    if (__ENV.SCHEDULE === "interval") {
      const timer = setInterval(() => {
        service.send(payload);
        if (++sent === chunks) clearInterval(timer), service.send("eof");
      }, interval);
      return;
    }
    const next = () => {
      service.send(payload);
      if (++sent === chunks) service.send("eof");
      else setTimeout(next, Math.max(0, zero + (sent + 1) * interval - Date.now()));
    };
    setTimeout(next, interval);
  };
}
