import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Collections;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * Measures the Java client. Arguments: servers, folder, operations in flight, number of operations; or servers, an
 * existing path, `events`, number of events. Prints JSON lines.
 */
public final class ZooKeeperJava {
    private static final byte[] DATA = new byte[100];
    /** More than for the other clients, because the compiler of the virtual machine needs it. */
    private static final int WARM_UP = 30_000;
    private static final int WARM_UP_IN_FLIGHT = 100;
    private static final int SESSION_TIMEOUT_MS = 60_000;
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** An asynchronous operation. */
    private interface Operation {
        void begin(int index, Callback callback);
    }

    private interface Callback {
        void done(int code);
    }

    private interface Reporter {
        void report(String operation, double seconds, double cpuMicros, int count);
    }

    public static void main(String[] args) throws Exception {
        Arrays.fill(DATA, (byte) 'x');
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(args[0], SESSION_TIMEOUT_MS, event -> {
            if (event.getState() == KeeperState.SyncConnected) connected.countDown();
        });
        connected.await();
        int count = Integer.parseInt(args[3]);
        if (args[2].equals("events")) {
            measureEvents(client, args[1], count);
        } else {
            int inFlight = Integer.parseInt(args[2]);
            client.create(args[1], DATA, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            measureAll(client, args[1] + "/warm-up", WARM_UP_IN_FLIGHT, WARM_UP, (operation, s, cpu, n) -> { });
            measureAll(client, args[1] + "/measured", inFlight, count,
                (operation, seconds, cpu, n) -> print(operation, inFlight, seconds, cpu, n));
        }
        client.close();
    }

    private static void measureAll(ZooKeeper client, String folder, int inFlight, int count, Reporter reporter)
            throws Exception {
        client.create(folder, DATA, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        Operation set = (index, cb) ->
            client.setData(folder + "/" + index, DATA, -1, (code, path, context, stat) -> cb.done(code), null);
        Operation get = (index, cb) ->
            client.getData(folder + "/" + index, false, (code, path, context, data, stat) -> cb.done(code), null);
        measure("create", inFlight, count, reporter, (index, cb) ->
            client.create(folder + "/" + index, DATA, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT,
                (code, path, context, name) -> cb.done(code), null));
        measure("set", inFlight, count, reporter, set);
        measure("get", inFlight, count, reporter, get);
        measure("set of one znode", inFlight, count, reporter, (index, cb) ->
            client.setData(folder, DATA, -1, (code, path, context, stat) -> cb.done(code), null));
        measure("get of one znode", inFlight, count, reporter, (index, cb) ->
            client.getData(folder, false, (code, path, context, data, stat) -> cb.done(code), null));
        measure("two gets and a set", inFlight, count, reporter, (index, cb) ->
            (index % 3 == 2 ? set : get).begin(index, cb));
        measure("transaction of 10", inFlight, count, reporter, (index, cb) ->
            client.multi(Collections.nCopies(10, Op.setData(folder + "/" + index, DATA, -1)),
                (code, path, context, results) -> cb.done(code), null));
        measure("delete", inFlight, count, reporter, (index, cb) ->
            client.delete(folder + "/" + index, -1, (code, path, context) -> cb.done(code), null));
    }

    /** Runs the operation for 0 to count - 1, that many at a time. */
    private static void measure(String name, int inFlight, int count, Reporter reporter, Operation operation)
            throws Exception {
        Semaphore room = new Semaphore(inFlight);
        AtomicReference<Code> failure = new AtomicReference<>();
        Callback callback = code -> {
            if (code != Code.OK.intValue()) failure.set(Code.get(code));
            room.release();
        };
        long cpuBefore = SYSTEM.getProcessCpuTime();
        long began = System.nanoTime();
        for (int index = 0; index < count; index++) {
            room.acquire();
            operation.begin(index, callback);
        }
        room.acquire(inFlight);
        long nanos = System.nanoTime() - began;
        if (failure.get() != null) throw new IllegalStateException(name + ": " + failure.get());
        reporter.report(name, nanos / 1e9, (SYSTEM.getProcessCpuTime() - cpuBefore) / 1e3, count);
    }

    private static void measureEvents(ZooKeeper client, String path, int count) throws Exception {
        AtomicInteger events = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(1);
        long[] first = new long[2];
        client.addWatch(path, event -> {
            if (event.getType() != EventType.NodeDataChanged) return;
            int number = events.incrementAndGet();
            if (number == 1) {
                first[0] = System.nanoTime();
                first[1] = SYSTEM.getProcessCpuTime();
            }
            if (number == count) all.countDown();
        }, AddWatchMode.PERSISTENT);
        System.out.println("ready");
        all.await();
        double cpu = (SYSTEM.getProcessCpuTime() - first[1]) / 1e3;
        print("persistent watch event", 100, (System.nanoTime() - first[0]) / 1e9, cpu, count);
    }

    private static void print(String operation, int inFlight, double seconds, double cpuMicros, int count) {
        System.out.printf(Locale.ROOT,
            "{\"operation\": \"%s\", \"inFlight\": %d, \"perSecond\": %f, \"cpuPerOperation\": %f}%n",
            operation, inFlight, count / seconds, cpuMicros / count);
    }

    private ZooKeeperJava() { }
}
