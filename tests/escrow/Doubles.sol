// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @title A token that misbehaves on demand
/// @notice Circle's token cannot do these things; the escrow must survive a token that can.
contract OddToken {
    enum Habit {
        None,
        TakesFee,
        ReturnsFalse,
        ReturnsNothing,
        ReturnsTwo,
        Reverts,
        BurnsGas,
        CallsBack
    }

    Habit public habit;
    address public target;
    bytes public errand;
    bool public errandDone;
    bytes public errandAnswer;
    mapping(address => uint256) public balanceOf;

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function behave(Habit habit_) external {
        habit = habit_;
    }

    /// @notice What to call in the middle of every transfer.
    function callBack(address target_, bytes calldata errand_) external {
        (habit, target, errand) = (Habit.CallsBack, target_, errand_);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        return _move(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        return _move(from, to, amount);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 amount,
        uint256,
        uint256,
        bytes32,
        bytes calldata
    ) external {
        _move(from, to, amount);
    }

    function _move(address from, address to, uint256 amount) private returns (bool) {
        if (habit == Habit.ReturnsFalse) return false;
        if (habit == Habit.Reverts) revert("no");
        if (habit == Habit.BurnsGas) {
            while (true) {}
        }
        balanceOf[from] -= amount;
        balanceOf[to] += habit == Habit.TakesFee ? amount - 1 : amount;
        if (habit == Habit.CallsBack) (errandDone, errandAnswer) = target.call(errand);
        if (habit == Habit.ReturnsNothing) {
            assembly ("memory-safe") {
                return(0, 0)
            }
        }
        if (habit == Habit.ReturnsTwo) {
            assembly ("memory-safe") {
                mstore(0, 2)
                return(0, 32)
            }
        }
        return true;
    }
}

/// @title An account with code that signs by ERC-1271, or pretends to
contract Wallet {
    enum Habit {
        Signs,
        Refuses,
        Reverts,
        RevertsYes,
        AnswersShort,
        AnswersTrue
    }

    Habit public habit;
    mapping(bytes32 => bool) public approved;

    function behave(Habit habit_) external {
        habit = habit_;
    }

    function approve(bytes32 digest) external {
        approved[digest] = true;
    }

    /// @notice Several calls in one transaction.
    function act(address target, bytes[] calldata calls) external {
        for (uint256 i = 0; i < calls.length; ++i) {
            (bool ok,) = target.call(calls[i]);
            require(ok);
        }
    }

    function isValidSignature(bytes32 digest, bytes calldata) external view returns (bytes4) {
        if (habit == Habit.Reverts) revert("no");
        if (habit == Habit.RevertsYes) {
            assembly ("memory-safe") {
                mstore(0, shl(224, 0x1626ba7e))
                revert(0, 32)
            }
        }
        if (habit == Habit.AnswersShort) {
            assembly ("memory-safe") {
                mstore(0, shl(224, 0x1626ba7e))
                return(0, 4)
            }
        }
        if (habit == Habit.AnswersTrue) {
            assembly ("memory-safe") {
                mstore(0, 1)
                return(0, 32)
            }
        }
        return habit == Habit.Signs && approved[digest] ? bytes4(0x1626ba7e) : bytes4(0xffffffff);
    }
}
