import {
  KubeApiServer,
  kubernetesPrograms,
  READER_TOKEN,
  STRANGER_TOKEN,
} from "../support/kube-apiserver.ts";
import { describeApiServer } from "./api-server-suite.ts";

const programs = kubernetesPrograms();

if (programs !== undefined) {
  describeApiServer("kube-apiserver", async () => {
    const server = await KubeApiServer.start(programs);
    return {
      put: (slice) => server.put(slice),
      delete: (namespace, name) => server.delete(namespace, name),
      expireLists: () => server.compact(),
      kubeconfig: (user) => server.kubeconfig(user),
      readerToken: READER_TOKEN,
      strangerToken: STRANGER_TOKEN,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  });
}
