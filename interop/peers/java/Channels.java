import com.sun.nio.sctp.AbstractNotificationHandler;
import com.sun.nio.sctp.AssociationChangeNotification;
import com.sun.nio.sctp.HandlerResult;
import com.sun.nio.sctp.MessageInfo;
import com.sun.nio.sctp.SctpChannel;
import com.sun.nio.sctp.SctpMultiChannel;
import com.sun.nio.sctp.SctpServerChannel;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Both ends of each kind of SCTP channel of OpenJDK; prints what it receives. */
public class Channels {
    private static final int ONE = 5200;
    private static final int MANY = 5201;

    /** Records changes of associations. */
    private static class Changes extends AbstractNotificationHandler<List<String>> {
        @Override
        public HandlerResult handleNotification(AssociationChangeNotification change, List<String> seen) {
            seen.add(change.event().name());
            return HandlerResult.CONTINUE;
        }
    }

    /** `listen ADDRESS`, `connect ADDRESS`, or `say ADDRESS LINE` to a listener there. */
    public static void main(String[] args) throws Exception {
        InetSocketAddress one = new InetSocketAddress(args[1], ONE);
        InetSocketAddress many = new InetSocketAddress(args[1], MANY);
        switch (args[0]) {
            case "listen" -> listen(one, many);
            case "connect" -> connect(one, many);
            default -> sendLine(one, args[2] + "\n");
        }
    }

    private static void listen(InetSocketAddress one, InetSocketAddress many) throws Exception {
        SctpServerChannel server = SctpServerChannel.open().bind(one);
        SctpMultiChannel multi = SctpMultiChannel.open().bind(many);
        System.out.println("listening");
        try (SctpChannel peer = server.accept()) {
            echo(peer);
        }
        branch(multi);
        try (SctpChannel peer = server.accept()) {
            peer.receive(ByteBuffer.allocate(1000), new ArrayList<>(), new Changes());
        }
        System.out.println("the end of the listener");
    }

    private static void connect(InetSocketAddress one, InetSocketAddress many) throws Exception {
        connectBySelector(one);
        sendToBranch(many);
        closeFromAnotherThread(one);
        System.out.println("the end of the connector");
    }

    private static void sendLine(InetSocketAddress one, String text) throws Exception {
        SctpChannel client = SctpChannel.open(one, 0, 0);
        client.send(bytes(text), MessageInfo.createOutgoing(null, 0));
        // Its input ends once the listener has received the line.
        System.in.readAllBytes();
        client.shutdown();
        client.close();
    }

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(ByteBuffer buffer) {
        buffer.flip();
        return StandardCharsets.UTF_8.decode(buffer).toString();
    }

    private static void echo(SctpChannel peer) throws Exception {
        List<String> seen = new ArrayList<>();
        ByteBuffer buffer = ByteBuffer.allocate(1000);
        MessageInfo info = peer.receive(buffer, seen, new Changes());
        String text = text(buffer);
        System.out.println("received " + text + " on " + info.streamNumber());
        peer.send(bytes(text), MessageInfo.createOutgoing(null, info.streamNumber()));
        buffer.clear();
        info = peer.receive(buffer, seen, new Changes());
        System.out.println("server saw " + seen + ", then " + info.bytes());
    }

    private static void connectBySelector(InetSocketAddress one) throws Exception {
        SctpChannel client = SctpChannel.open();
        client.configureBlocking(false);
        client.connect(one);
        Selector selector = Selector.open();
        SelectionKey key = client.register(selector, SelectionKey.OP_CONNECT);
        selector.select(10_000);
        System.out.println("connectable " + key.isConnectable() + ", connected " + client.finishConnect());
        key.cancel();
        selector.close();
        client.configureBlocking(true);
        client.send(bytes("hello"), MessageInfo.createOutgoing(null, 3));
        List<String> seen = new ArrayList<>();
        ByteBuffer buffer = ByteBuffer.allocate(1000);
        MessageInfo info = client.receive(buffer, seen, new Changes());
        System.out.println("client saw " + seen + ", then " + text(buffer) + " on " + info.streamNumber());
        client.shutdown();
        client.close();
    }

    private static void branch(SctpMultiChannel server) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(1000);
        MessageInfo info = server.receive(buffer, new ArrayList<>(), new Changes());
        System.out.println("branched after " + text(buffer));
        SctpChannel branched = server.branch(info.association());
        branched.send(bytes("from the branch"), MessageInfo.createOutgoing(null, 1));
        branched.close();
    }

    private static void sendToBranch(InetSocketAddress many) throws Exception {
        SctpMultiChannel client = SctpMultiChannel.open();
        client.send(bytes("first"), MessageInfo.createOutgoing(many, 0));
        ByteBuffer buffer = ByteBuffer.allocate(1000);
        MessageInfo info = client.receive(buffer, new ArrayList<>(), new Changes());
        System.out.println(text(buffer) + " on " + info.streamNumber());
        client.close();
    }

    private static void closeFromAnotherThread(InetSocketAddress one) throws Exception {
        SctpChannel client = SctpChannel.open(one, 0, 0);
        Thread waiting = new Thread(() -> {
            try {
                client.receive(ByteBuffer.allocate(1000), null, null);
                System.out.println("received, though closed");
            } catch (ClosedChannelException ended) {
                System.out.println("closed while it waited");
            } catch (Exception error) {
                System.out.println("closing: " + error);
            }
        });
        waiting.start();
        while (waiting.getState() != Thread.State.RUNNABLE) {
            Thread.sleep(5);
        }
        Thread.sleep(300);
        client.close();
        waiting.join(10_000);
    }
}
