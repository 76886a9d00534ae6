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

/** Both ends of each kind of channel that OpenJDK has for SCTP; says what it has seen. */
public class Channels {
    private static final InetSocketAddress ONE = new InetSocketAddress("127.0.0.1", 5310);
    private static final InetSocketAddress MANY = new InetSocketAddress("127.0.0.1", 5311);

    /** Notes what becomes of associations, and goes on. */
    private static class Changes extends AbstractNotificationHandler<List<String>> {
        @Override
        public HandlerResult handleNotification(AssociationChangeNotification change, List<String> seen) {
            seen.add(change.event().name());
            return HandlerResult.CONTINUE;
        }
    }

    public static void main(String[] words) throws Exception {
        connectBySelector();
        branch();
        closeFromAnotherThread();
        System.out.println("the end");
    }

    private static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String text(ByteBuffer buffer) {
        buffer.flip();
        return StandardCharsets.UTF_8.decode(buffer).toString();
    }

    private static void connectBySelector() throws Exception {
        SctpServerChannel server = SctpServerChannel.open().bind(ONE);
        Thread echo = new Thread(() -> {
            try (SctpChannel peer = server.accept()) {
                List<String> seen = new ArrayList<>();
                ByteBuffer buffer = ByteBuffer.allocate(1000);
                MessageInfo info = peer.receive(buffer, seen, new Changes());
                buffer.flip();
                peer.send(buffer, MessageInfo.createOutgoing(null, info.streamNumber()));
                buffer.clear();
                info = peer.receive(buffer, seen, new Changes());
                System.out.println("server saw " + seen + ", then " + info.bytes());
            } catch (Exception error) {
                System.out.println("server: " + error);
            }
        });
        echo.start();
        SctpChannel client = SctpChannel.open();
        client.configureBlocking(false);
        client.connect(ONE);
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
        echo.join(10_000);
        client.close();
        server.close();
    }

    private static void branch() throws Exception {
        SctpMultiChannel server = SctpMultiChannel.open().bind(MANY);
        SctpMultiChannel client = SctpMultiChannel.open();
        client.send(bytes("first"), MessageInfo.createOutgoing(MANY, 0));
        List<String> seen = new ArrayList<>();
        ByteBuffer buffer = ByteBuffer.allocate(1000);
        MessageInfo info = server.receive(buffer, seen, new Changes());
        String first = text(buffer);
        SctpChannel branched = server.branch(info.association());
        branched.send(bytes("from the branch"), MessageInfo.createOutgoing(null, 1));
        buffer.clear();
        info = client.receive(buffer, seen, new Changes());
        System.out.println("branched after " + first + ": " + text(buffer) + " on " + info.streamNumber());
        branched.close();
        client.close();
        server.close();
    }

    private static void closeFromAnotherThread() throws Exception {
        SctpServerChannel server = SctpServerChannel.open().bind(ONE);
        SctpChannel client = SctpChannel.open(ONE, 0, 0);
        SctpChannel peer = server.accept();
        Thread waits = new Thread(() -> {
            try {
                ByteBuffer buffer = ByteBuffer.allocate(1000);
                client.receive(buffer, null, null);
                System.out.println("received, though closed");
            } catch (ClosedChannelException ended) {
                System.out.println("closed while it waited");
            } catch (Exception error) {
                System.out.println("closing: " + error);
            }
        });
        waits.start();
        while (waits.getState() != Thread.State.RUNNABLE) {
            Thread.sleep(5);
        }
        Thread.sleep(300);
        client.close();
        waits.join(10_000);
        peer.close();
        server.close();
    }
}
