// C++: RAII handles, errors as exceptions, and the report of a failed race.

#include <eyas.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr int patience = 20000;

template <auto release>
struct Freed {
    template <typename T>
    void operator()(T *handle) const { release(handle); }
};

using Endpoint = std::unique_ptr<eyas_endpoint, Freed<eyas_endpoint_free>>;
using Target = std::unique_ptr<eyas_target, Freed<eyas_target_free>>;
using Options = std::unique_ptr<eyas_listen_options, Freed<eyas_listen_options_free>>;
using Listener = std::unique_ptr<eyas_listener, Freed<eyas_listener_free>>;
using Connection = std::unique_ptr<eyas_connection, Freed<eyas_connection_free>>;
using Error = std::unique_ptr<eyas_error, Freed<eyas_error_free>>;
using Text = std::unique_ptr<char, Freed<eyas_text_free>>;

// An error of eyas, with its code and, if a race failed, its report.
class Failure : public std::runtime_error {
public:
    explicit Failure(const eyas_error *error)
        : std::runtime_error(eyas_error_message(error)), code(eyas_error_code(error)),
          race(eyas_error_race_json(error) ? eyas_error_race_json(error) : "")
    {
    }

    const eyas_code code;
    const std::string race;
};

// Makes a call whose last arguments are its result and its error, and returns the result or throws.
template <typename Handle, typename Function, typename... Arguments>
Handle made(Function function, Arguments... arguments)
{
    typename Handle::pointer handle = nullptr;
    eyas_error *error = nullptr;
    const eyas_code code = function(arguments..., &handle, &error);
    const Error owned(error);
    if (code != EYAS_OK)
        throw Failure(owned.get());
    return Handle(handle);
}

template <typename Function, typename... Arguments>
void call(Function function, Arguments... arguments)
{
    eyas_error *error = nullptr;
    const eyas_code code = function(arguments..., &error);
    const Error owned(error);
    if (code != EYAS_OK)
        throw Failure(owned.get());
}

std::uint16_t port_of(const Listener &listener)
{
    std::uint16_t port = 0;
    call(eyas_listener_port, listener.get(), &port);
    return port;
}

Target target_at(std::uint16_t port)
{
    auto target = made<Target>(eyas_target_new, "127.0.0.1", port);
    call(eyas_target_set_transports, target.get(), "tcp");
    call(eyas_target_set_security, target.get(), "none");
    return target;
}

// A race may open more than one connection: those that lose end without data.
Connection accept_speaker(const Listener &listener, std::string &said)
{
    for (;;) {
        auto connection = made<Connection>(eyas_listener_accept, listener.get(), patience);
        char buffer[16];
        std::size_t length = 0;
        const auto code = eyas_connection_read(connection.get(), buffer, sizeof buffer, &length,
                                               patience, nullptr);
        said.assign(buffer, length);
        if (code == EYAS_OK)
            return connection;
    }
}

// One thread reads, another one cancels the call.
void abort_from_another_thread(const Connection &connection)
{
    eyas_code code = EYAS_OK;
    std::thread reader([&] {
        char buffer[16];
        std::size_t length = 0;
        code = eyas_connection_read(connection.get(), buffer, sizeof buffer, &length, -1, nullptr);
    });
    call(eyas_connection_abort, connection.get());
    reader.join();
    if (code != EYAS_CANCELLED && code != EYAS_CLOSED)
        throw std::runtime_error("a connection that was aborted can be read");
}

// Nothing listens any more: the error names the candidate and its cause.
void fail_to_connect(const Endpoint &endpoint, const Target &target)
{
    try {
        made<Connection>(eyas_connect, endpoint.get(), target.get(), patience);
    } catch (const Failure &failure) {
        std::cout << failure.code << ": " << failure.what() << '\n' << failure.race << '\n';
        if (failure.code == EYAS_CONNECT && failure.race.find("refused") != std::string::npos)
            return;
    }
    throw std::runtime_error("a port without a listener took a connection");
}

void run()
{
    const auto endpoint = made<Endpoint>(eyas_endpoint_new, nullptr);
    const auto options = made<Options>(eyas_listen_options_new, "127.0.0.1:0");
    auto listener = made<Listener>(eyas_listen, endpoint.get(), options.get());
    const auto target = target_at(port_of(listener));

    const auto here = made<Connection>(eyas_connect, endpoint.get(), target.get(), patience);
    const std::string word = "hello";
    std::string said;
    call(eyas_connection_write, here.get(), word.data(), word.size(), nullptr, patience);
    const auto there = accept_speaker(listener, said);
    if (said != word)
        throw std::runtime_error("something else arrived");

    std::cout << made<Text>(eyas_connection_info_json, here.get()).get() << '\n';
    std::cout << made<Text>(eyas_plan_json, endpoint.get(), target.get(), patience).get() << '\n';
    abort_from_another_thread(here);
    listener.reset();
    fail_to_connect(endpoint, target);
}

} // namespace

int main()
{
    try {
        run();
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
