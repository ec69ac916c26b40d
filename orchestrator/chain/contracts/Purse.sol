// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {IRentalEscrow} from "./IRentalEscrow.sol";

/// @dev As much of USDC as is used here: ERC-20, and of EIP-3009 the one call that only the payee can make.
interface IToken {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}

/// @title The money: how it comes in, how it goes out, and whose it is in between
/// @dev Knows nothing of rentals. One slot for the two sums and one for each account.
abstract contract Purse is IRentalEscrow {
    // `known` stays true for ever: a slot that never falls back to zero is much cheaper to write again.

    /// @dev held: all deposits of open rentals and all that is left in open budgets. credits: the sum of all credits.
    struct Sums {
        uint120 held;
        uint120 credits;
        bool known;
    }

    struct Account {
        uint120 credit;
        uint24 openAsRenter;
        uint24 openAsProvider;
        bool known;
    }

    IToken internal immutable TOKEN;

    Sums internal _sums;
    mapping(address owner => Account) internal _accounts;
    bool private transient _entered;

    modifier nonReentrant() {
        if (_entered) revert Reentered();
        _entered = true;
        _;
        _entered = false;
    }

    constructor(address token_) {
        if (token_.code.length == 0) revert BadToken(token_);
        TOKEN = IToken(token_);
        _sums.known = true;
    }

    function withdraw() external returns (uint256 amount) {
        return withdrawFor(msg.sender);
    }

    function withdrawFor(address owner) public nonReentrant returns (uint256 amount) {
        amount = _accounts[owner].credit;
        if (amount == 0) revert NothingToWithdraw(owner);

        _accounts[owner].credit = 0;
        _sums.credits -= uint120(amount);
        emit Withdrawn(owner, amount);

        if (!_push(owner, amount)) revert TransferFailed(owner, amount);
    }

    function creditOf(address owner) external view returns (uint256) {
        return _accounts[owner].credit;
    }

    function held() external view returns (uint256) {
        return _sums.held;
    }

    function credits() external view returns (uint256) {
        return _sums.credits;
    }

    function token() external view returns (address) {
        return address(TOKEN);
    }

    function _credit(address owner, uint120 amount) internal {
        _accounts[owner].credit += amount;
        _sums.credits += amount;
    }

    /// @dev From the caller's wallet, by allowance. It is booked before.
    function _pull(uint256 amount) internal {
        if (!TOKEN.transferFrom(msg.sender, address(this), amount)) revert TransferFailed(msg.sender, amount);
        _mustBeSolvent();
    }

    /// @dev From the wallet of who signed it, see EIP-3009: only the payee can use such a signature. It is booked before.
    function _receive(address from, uint256 amount, uint256 validBefore, bytes32 nonce, bytes calldata signature)
        internal
    {
        TOKEN.receiveWithAuthorization(from, address(this), amount, 0, validBefore, nonce, signature);
        _mustBeSolvent();
    }

    /// @dev To its owner now, or as a credit if the token refuses.
    /// @param about The rental that it came from, 0 for a budget.
    function _sendHome(address owner, bytes32 about, uint120 amount) internal {
        if (amount == 0 || _push(owner, amount)) return;
        _credit(owner, amount);
        emit Credited(owner, about, amount);
    }

    /// @dev Never reverts, whatever the token does; an answer shorter than a word does not read as one. Starving it of
    /// gas does not turn a push into a credit: the 64th part that would be left here could not pay for booking it.
    function _push(address to, uint256 amount) private returns (bool) {
        (bool ok, bytes memory answer) = address(TOKEN).call(abi.encodeCall(IToken.transfer, (to, amount)));
        return ok && uint256(bytes32(answer)) == 1;
    }

    /// @dev Whatever the token did with a payment: what is here covers what was promised, or the payment is undone. The
    /// same if what was promised is more than one sum holds: closing moves it from one to the other and must never fail.
    function _mustBeSolvent() private view {
        uint256 promised = uint256(_sums.held) + _sums.credits;
        uint256 here = TOKEN.balanceOf(address(this));
        if (here < promised || promised > type(uint120).max) revert BadDeposit(promised, here);
    }
}
