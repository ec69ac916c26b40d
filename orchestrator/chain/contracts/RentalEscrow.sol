// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "./IRentalEscrow.sol";
import {OpenRentals} from "./OpenRentals.sol";
import {Signatures} from "./Signatures.sol";

/// @dev As much of ERC-20 as is used here.
interface IERC20 {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title Rental escrow
/// @notice Holds the deposits of rentals and pays them out. The interface says what it promises and what it assumes.
/// @dev What a public function does is written at the interface. Every one that writes has the same order: check,
/// effect, interaction. Amounts are base units of the one token, times are seconds. Price times time fits 128 bits,
/// because the price has 96 and the time 32.
contract RentalEscrow is IRentalEscrow {
    using OpenRentals for OpenRentals.Lists;

    uint256 public constant MAX_FEE_BPS = 1500;

    uint256 private constant HOUR = 3600;
    uint256 private constant BPS = 10_000;

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant QUOTE_TYPEHASH = keccak256(
        "Quote(address provider,address renter,bytes32 offerId,bytes32 specHash,uint96 pricePerHour,uint16 feeBps,"
        "address feeRecipient,uint32 minSeconds,uint32 maxSeconds,uint32 startWindow,uint32 inspectionSeconds,"
        "uint64 validUntil,bytes32 salt)"
    );
    bytes32 private constant END_TYPEHASH = keccak256("End(bytes32 id,bytes32 reportDigest)");

    IERC20 private immutable TOKEN;

    uint256 public held;
    uint256 public credits;
    mapping(address owner => uint256) public creditOf;
    mapping(bytes32 digest => bool) public quoteSpent;
    mapping(bytes32 id => Rental) private _rentals;
    OpenRentals.Lists private _open;
    bool private transient _entered;

    modifier nonReentrant() {
        if (_entered) revert Reentered();
        _entered = true;
        _;
        _entered = false;
    }

    constructor(address token_) {
        if (token_.code.length == 0) revert BadToken(token_);
        TOKEN = IERC20(token_);
    }

    // ---- opening ------------------------------------------------------------------------------------------

    function create(
        bytes32 key,
        Quote calldata quote,
        bytes calldata signature,
        uint32 seconds_,
        uint256 maxDeposit,
        bytes32 accessHash
    ) external nonReentrant returns (bytes32 id) {
        // Checks.
        if (msg.sender != quote.renter) revert NotAllowed(msg.sender);
        id = rentalId(msg.sender, key);
        if (_rentals[id].state != State.None) revert RentalExists(id);
        bytes32 digest = _checkQuote(quote, signature);
        _checkSeconds(seconds_, quote.minSeconds == 0 ? 1 : quote.minSeconds, quote.maxSeconds);
        uint128 deposit = _priceAhead(quote.pricePerHour, seconds_);
        if (deposit > maxDeposit) revert AboveMaximum(deposit, maxDeposit);

        // Effects.
        quoteSpent[digest] = true;
        held += deposit;
        _store(id, key, quote, seconds_, deposit, accessHash);
        _open.add(id, quote.renter, quote.provider);
        _announce(id, digest);

        // Interaction.
        _pull(deposit);
    }

    function activate(bytes32 id, bytes32 readyHash) external nonReentrant {
        Rental storage r = _in(id, State.Funded);
        if (msg.sender != r.provider) revert NotAllowed(msg.sender);
        if (block.timestamp > r.startBy) revert TooLate(r.startBy, block.timestamp);

        r.state = State.Active;
        r.startedAt = uint64(block.timestamp);
        r.endsAt = uint64(block.timestamp) + r.fundedSeconds;
        r.readyHash = readyHash;
        emit RentalActivated(id, r.startedAt, r.endsAt, readyHash);
    }

    function cancelQuote(Quote calldata quote) external nonReentrant {
        if (msg.sender != quote.provider) revert NotAllowed(msg.sender);
        bytes32 digest = quoteDigest(quote);
        if (quoteSpent[digest]) revert QuoteSpent(digest);

        quoteSpent[digest] = true;
        emit QuoteCancelled(msg.sender, digest);
    }

    function extendTo(bytes32 id, uint32 totalSeconds, uint256 maxExtra) external nonReentrant {
        // Checks.
        Rental storage r = _in(id, State.Active);
        if (msg.sender != r.renter) revert NotAllowed(msg.sender);
        if (block.timestamp >= r.endsAt) revert TooLate(r.endsAt - 1, block.timestamp);
        _checkSeconds(totalSeconds, uint256(r.fundedSeconds) + 1, r.maxSeconds);
        uint128 deposit = _priceAhead(r.pricePerHour, totalSeconds);
        uint128 extra = deposit - r.deposit;
        if (extra > maxExtra) revert AboveMaximum(extra, maxExtra);

        // Effects.
        held += extra;
        r.deposit = deposit;
        r.fundedSeconds = totalSeconds;
        r.endsAt = r.startedAt + totalSeconds;
        emit RentalExtended(id, totalSeconds, r.endsAt, deposit);

        // Interaction.
        _pull(extra);
    }

    // ---- closing ------------------------------------------------------------------------------------------

    function cancel(bytes32 id) external nonReentrant {
        Rental storage r = _in(id, State.Funded);
        bool noShow = block.timestamp > r.startBy;
        if (!noShow && msg.sender != r.renter && msg.sender != r.provider) revert NotAllowed(msg.sender);

        _close(id, r, noShow ? Outcome.NoShow : Outcome.Cancelled, msg.sender, 0);
    }

    function reject(bytes32 id, uint8 reason, bytes32 evidence) external nonReentrant {
        Rental storage r = _in(id, State.Active);
        if (msg.sender != r.renter) revert NotAllowed(msg.sender);
        if (!_inspecting(r)) revert TooLate(uint256(r.startedAt) + r.inspectionSeconds, block.timestamp);

        r.reason = reason;
        r.reportDigest = evidence;
        _close(id, r, Outcome.Rejected, msg.sender, 0);
    }

    function end(bytes32 id, bytes32 reportDigest) external nonReentrant {
        Rental storage r = _in(id, State.Active);
        if (msg.sender == r.renter) {
            _endByRenter(id, r, reportDigest);
        } else if (msg.sender != r.provider) {
            revert NotAllowed(msg.sender);
        } else if (_inspecting(r) && block.timestamp < r.endsAt) {
            _close(id, r, Outcome.Abandoned, msg.sender, 0);
        } else {
            _closeByTime(id, r, msg.sender);
        }
    }

    function endSigned(bytes32 id, bytes32 reportDigest, bytes calldata signature) external nonReentrant {
        Rental storage r = _in(id, State.Active);
        if (!Signatures.signedBy(r.renter, endDigest(id, reportDigest), signature)) revert BadSignature(r.renter);

        _endByRenter(id, r, reportDigest);
    }

    function settle(bytes32 id) external nonReentrant {
        Rental storage r = _in(id, State.Active);
        if (block.timestamp < r.endsAt) revert TooEarly(r.endsAt, block.timestamp);

        _closeByTime(id, r, msg.sender);
    }

    // ---- credits ------------------------------------------------------------------------------------------

    function withdraw() external returns (uint256 amount) {
        return withdrawFor(msg.sender);
    }

    function withdrawFor(address owner) public nonReentrant returns (uint256 amount) {
        amount = creditOf[owner];
        if (amount == 0) revert NothingToWithdraw(owner);

        creditOf[owner] = 0;
        credits -= amount;
        emit Withdrawn(owner, amount);

        if (!_push(owner, amount)) revert TransferFailed(owner, amount);
    }

    // ---- views --------------------------------------------------------------------------------------------

    function rentalId(address renter, bytes32 key) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), renter, key));
    }

    function quoteDigest(Quote calldata quote) public view returns (bytes32) {
        return _typed(keccak256(abi.encode(QUOTE_TYPEHASH, quote)));
    }

    function endDigest(bytes32 id, bytes32 reportDigest) public view returns (bytes32) {
        return _typed(keccak256(abi.encode(END_TYPEHASH, id, reportDigest)));
    }

    function rental(bytes32 id) external view returns (Rental memory) {
        return _rentals[id];
    }

    function rentals(bytes32[] calldata ids) external view returns (Rental[] memory found) {
        found = new Rental[](ids.length);
        for (uint256 i = 0; i < ids.length; ++i) {
            found[i] = _rentals[ids[i]];
        }
    }

    function statusOf(bytes32 id) external view returns (Status) {
        Rental storage r = _rentals[id];
        if (r.state == State.Funded) return block.timestamp > r.startBy ? Status.NoShow : Status.Funded;
        if (r.state == State.Active) return block.timestamp < r.endsAt ? Status.Active : Status.Expired;
        return r.state == State.Closed ? Status.Closed : Status.None;
    }

    function accruedOf(bytes32 id) external view returns (uint256) {
        Rental storage r = _rentals[id];
        if (r.state == State.Active) return _accrued(r);
        return r.paid + r.fee;
    }

    function openRentals(address account, bool asProvider, uint256 cursor, uint256 limit)
        external
        view
        returns (bytes32[] memory ids, uint256 next)
    {
        return _open.page(account, asProvider, cursor, limit);
    }

    function token() external view returns (address) {
        return address(TOKEN);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        bytes32 name = keccak256("sealtune RentalEscrow");
        return keccak256(abi.encode(DOMAIN_TYPEHASH, name, keccak256("1"), block.chainid, address(this)));
    }

    // ---- checks -------------------------------------------------------------------------------------------

    function _in(bytes32 id, State wanted) private view returns (Rental storage r) {
        r = _rentals[id];
        if (r.state != wanted) revert WrongState(id, r.state);
    }

    function _checkQuote(Quote calldata quote, bytes calldata signature) private view returns (bytes32 digest) {
        if (block.timestamp > quote.validUntil) revert TooLate(quote.validUntil, block.timestamp);
        bool nobody = quote.feeBps != 0 && quote.feeRecipient == address(0);
        if (quote.feeBps > MAX_FEE_BPS || nobody) revert BadFee(quote.feeBps, quote.feeRecipient);
        digest = quoteDigest(quote);
        if (quoteSpent[digest]) revert QuoteSpent(digest);
        if (!Signatures.signedBy(quote.provider, digest, signature)) revert BadSignature(quote.provider);
    }

    function _checkSeconds(uint256 seconds_, uint256 least, uint256 most) private pure {
        if (seconds_ < least || seconds_ > most) revert BadSeconds(seconds_, least, most);
    }

    function _inspecting(Rental storage r) private view returns (bool) {
        return block.timestamp <= uint256(r.startedAt) + r.inspectionSeconds;
    }

    function _typed(bytes32 structHash) private view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
    }

    // ---- money --------------------------------------------------------------------------------------------

    /// @dev What is paid ahead rounds up.
    function _priceAhead(uint256 pricePerHour, uint256 seconds_) private pure returns (uint128) {
        return uint128((pricePerHour * seconds_ + HOUR - 1) / HOUR);
    }

    /// @dev What is owed rounds down, so it cannot exceed the deposit: time is clamped to the funded time.
    function _accrued(Rental storage r) private view returns (uint128) {
        uint256 until = block.timestamp < r.endsAt ? block.timestamp : r.endsAt;
        return uint128(uint256(r.pricePerHour) * (until - r.startedAt) / HOUR);
    }

    function _endByRenter(bytes32 id, Rental storage r, bytes32 reportDigest) private {
        r.reportDigest = reportDigest;
        _closeByTime(id, r, r.renter);
    }

    function _closeByTime(bytes32 id, Rental storage r, address by) private {
        _close(id, r, block.timestamp < r.endsAt ? Outcome.Ended : Outcome.Expired, by, _accrued(r));
    }

    /// @dev The one exit: splits the deposit, books every unit of it, then tries to push the refund. What follows the
    /// push only happens when no token moved, and the guard is still up.
    function _close(bytes32 id, Rental storage r, Outcome outcome, address by, uint128 accrued) private {
        uint128 fee = uint128(uint256(accrued) * r.feeBps / BPS);
        uint128 refund = r.deposit - accrued;

        // Effects.
        r.state = State.Closed;
        r.outcome = outcome;
        r.closedBy = by;
        r.closedAt = uint64(block.timestamp);
        r.paid = accrued - fee;
        r.fee = fee;
        r.refunded = refund;
        held -= r.deposit;
        _open.remove(id, r.renter, r.provider);
        emit RentalClosed(
            id, r.renter, r.provider, outcome, by, accrued - fee, fee, refund, r.reason, r.reportDigest
        );
        _credit(r.provider, id, accrued - fee);
        _credit(r.feeRecipient, id, fee);

        // Interaction.
        if (refund != 0 && !_push(r.renter, refund)) {
            r.refundCredited = true;
            _credit(r.renter, id, refund);
        }
    }

    function _credit(address owner, bytes32 id, uint256 amount) private {
        if (amount == 0) return;
        creditOf[owner] += amount;
        credits += amount;
        emit Credited(owner, id, amount);
    }

    /// @dev From the caller, measured.
    function _pull(uint256 amount) private {
        uint256 before = TOKEN.balanceOf(address(this));
        if (!TOKEN.transferFrom(msg.sender, address(this), amount)) revert TransferFailed(msg.sender, amount);
        uint256 received = TOKEN.balanceOf(address(this)) - before;
        if (received != amount) revert BadDeposit(amount, received);
    }

    /// @dev Never reverts, whatever the token does; an answer shorter than a word does not read as one. Starving it of
    /// gas does not turn a push into a credit: the 64th part that would be left here could not pay for booking it.
    function _push(address to, uint256 amount) private returns (bool) {
        (bool ok, bytes memory answer) = address(TOKEN).call(abi.encodeCall(IERC20.transfer, (to, amount)));
        return ok && uint256(bytes32(answer)) == 1;
    }

    // ---- storage ------------------------------------------------------------------------------------------

    function _store(
        bytes32 id,
        bytes32 key,
        Quote calldata quote,
        uint32 seconds_,
        uint128 deposit,
        bytes32 accessHash
    ) private {
        Rental storage r = _rentals[id];
        r.key = key;
        r.renter = quote.renter;
        r.state = State.Funded;
        r.feeBps = quote.feeBps;
        r.inspectionSeconds = quote.inspectionSeconds;
        r.provider = quote.provider;
        r.pricePerHour = quote.pricePerHour;
        r.feeRecipient = quote.feeRecipient;
        r.fundedSeconds = seconds_;
        r.maxSeconds = quote.maxSeconds;
        r.createdAt = uint64(block.timestamp);
        r.startBy = uint64(block.timestamp) + quote.startWindow;
        r.deposit = deposit;
        r.offerId = quote.offerId;
        r.specHash = quote.specHash;
        r.accessHash = accessHash;
    }

    function _announce(bytes32 id, bytes32 digest) private {
        Rental storage r = _rentals[id];
        emit RentalFunded(
            id,
            r.renter,
            r.provider,
            r.key,
            digest,
            r.offerId,
            r.specHash,
            r.accessHash,
            r.deposit,
            r.fundedSeconds,
            r.startBy
        );
    }
}
