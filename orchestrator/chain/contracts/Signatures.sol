// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @title Who signed a digest: a key, or an account with code
library Signatures {
    /// @dev Half the order of secp256k1. Above it lies the twin of every signature.
    uint256 private constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;
    bytes4 private constant ERC1271_MAGIC = 0x1626ba7e;

    /// @dev The key comes first even where the account has code: an account that delegates its code (EIP-7702) still
    /// belongs to its key, and its delegate may know nothing of ERC-1271.
    function signedBy(address signer, bytes32 digest, bytes calldata signature) internal view returns (bool) {
        if (_recover(digest, signature) == signer && signer != address(0)) return true;
        if (signer.code.length == 0) return false;
        (bool ok, bytes memory answer) = signer.staticcall(abi.encodeWithSelector(ERC1271_MAGIC, digest, signature));
        return ok && answer.length >= 32 && bytes32(answer) == bytes32(ERC1271_MAGIC);
    }

    /// @dev The zero address for everything that is not one canonical 65-byte signature.
    function _recover(bytes32 digest, bytes calldata signature) private pure returns (address) {
        if (signature.length != 65) return address(0);
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > MAX_S) return address(0);
        return ecrecover(digest, uint8(signature[64]), bytes32(signature[:32]), s);
    }
}
